"""The doctor: holds any loader by the same handle, gathers evidence once, lets small pure rules judge, and reports."""
