"""What every room knows of one session: its definition, its folder and token, its thread and who may steer it."""
