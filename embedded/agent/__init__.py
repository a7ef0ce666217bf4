"""The bundled agent: a small, deterministic terminal agent for demonstrations and tests.

It has no model. It behaves towards its terminal and its hooks as Claude Code does: the same options, hook payloads,
conversation lines, queue and dialogs. Standard library only, and nothing of ours: it is a program of its own, run in a
pane by `python -I -S embedded/agent`.
"""
