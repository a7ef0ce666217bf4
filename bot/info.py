"""What the-loop has to know of Slack before Slack's libraries are imported. The group `the_loop.chats` names it."""

from core.config.chats import ChatInfo

SLACK = ChatInfo(
    title="Slack",
    settings="bot.schema:SlackBlock",
    session="bot.schema:SlackThread",
    setup="bot.setup:set_up",
    starter="""\
  slack:
    enabled: false
    # botTokenEnv: THE_LOOP_SLACK_BOT_TOKEN    # names of variables; the tokens themselves never stand in a file
    # appTokenEnv: THE_LOOP_SLACK_APP_TOKEN
    # channel: C0123456789
    # authorizedUsers: []                      # member ids; empty: nobody may speak to a session
""",
)
