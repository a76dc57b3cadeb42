terraform {
  required_providers {
    google = { source = "hashicorp/google", version = "~> 6.0" }
  }
}

data "google_client_config" "me" {}

data "google_project" "here" {
  project_id = data.google_client_config.me.project
}

output "who" { value = data.google_client_config.me.project }
output "project" { value = data.google_project.here.number }
