"""`python -m core.cli`: how the service is started detached."""

from core.cli.main import main

main()
