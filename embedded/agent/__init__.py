"""The bundled agent: a small, deterministic terminal agent for demonstrations and tests.

It has no model. Towards its terminal and its hooks it behaves as Claude Code does: the same options, hook payloads,
conversation lines, queue and dialogs. It uses the standard library and `core.base.values` only: it is a separate
program, run in a pane by `python -I -S embedded/agent`.
"""
