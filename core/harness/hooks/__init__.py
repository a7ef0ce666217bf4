"""The reporter that harnesses run as their hook, and the settings that name it."""
