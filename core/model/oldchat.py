"""Names of the chat that was once the only one: what records of earlier releases and `--json` rows call its fields.

Nothing else of core names a chat. New records hold `chat` and `thread`; rows hold `chat`, and these keys beside it for
the scripts that read them.
"""

KIND = "slack"
CHANNEL, THREAD = "slackChannel", "slackThread"  #: of a record and of a row
