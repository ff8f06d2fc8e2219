"""What everything stands on: the compiled core, threads, files, and the registry of what other packages offer."""
