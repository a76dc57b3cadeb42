package nuon

import rego.v1

deny contains message if {
	some change in input.plan.resource_changes
	change.change.after.input.port < 1024
	message := sprintf("%s: port %d needs root; choose one above 1023", [change.address, change.change.after.input.port])
}
