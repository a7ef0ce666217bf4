"""Between a chat's threads and sessions: replies, edits, orders and presses in; posts, reactions and status out."""
