"""From an app and an install to the model of a Stack, with everything that is wrong with it."""
