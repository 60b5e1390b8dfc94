"""The task types: what an experiment may compare."""
