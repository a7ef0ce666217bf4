"""The service: its parts put together, its workers, and how it is started, found and ended."""
