install_domain = ""
