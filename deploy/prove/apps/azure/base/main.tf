terraform {
  required_providers {
    azurerm = { source = "hashicorp/azurerm", version = "~> 4.0" }
  }
}

provider "azurerm" {
  resource_provider_registrations = "none"
  features {}
}

data "azurerm_client_config" "me" {}
data "azurerm_subscription" "here" {}

output "who" { value = data.azurerm_client_config.me.client_id }
output "subscription" { value = data.azurerm_subscription.here.display_name }
