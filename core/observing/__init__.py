"""What harnesses report: turns, questions, readiness; once each, in order."""
