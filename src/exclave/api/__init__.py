"""The two HTTP applications: translate, call one use case, translate."""
