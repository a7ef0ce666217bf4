"""`python -m core.surfaces.cli`: how the service is started detached."""

from core.surfaces.cli.main import main

main()
