"""The groups of `ControlClient`: one module and one class per noun, one method per route."""
