"""Two scripts that the demo copies into its folder as they stand here, for its reader to run and to change."""
