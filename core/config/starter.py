"""The file that `the-loop config init` writes: the keys that people change first, each with a word of explanation."""

STARTER = """\
# the-loop. All keys are optional; `the-loop config show` prints those in effect, `the-loop config check` what is wrong.
# This file names programs and folders that run with your rights: nobody else should be able to write it.

routing:
  defaultHarness: claude          # claude, bundled (a small agent for trying things out), or a key of `harnesses`
  # spawnWorkdir: ~/work          # where a session works that names no folder; paths start at this file's folder
  # harnessArgs:
  #   claude: [--permission-mode, acceptEdits]

standingSessions:
  enabled: false                  # true: `the-loop start` and each boot start the sessions below, too
  sessions: []
  # sessions:
  #   - name: scribe
  #     description: Keeps the notes
  #     cwd: ~/notes
  #     prompt: Read the folder, then wait for questions.
  #     slack: {enabled: true}
  #     loops:                    # what it is prompted with again and again
  #       - {name: tidy, instruction: Tidy the notes of today., cron: "0 18 * * *", timeZone: Europe/Berlin}

channels:
  slack:
    enabled: false
    # botTokenEnv: THE_LOOP_SLACK_BOT_TOKEN    # names of variables; the tokens themselves never stand in a file
    # appTokenEnv: THE_LOOP_SLACK_APP_TOKEN
    # channel: C0123456789
    # authorizedUsers: []                      # member ids; empty: nobody may speak to a session

# service:
#   port: 4114                    # /health and /metrics, on this machine alone; 0: a free one, which `status` names
"""
