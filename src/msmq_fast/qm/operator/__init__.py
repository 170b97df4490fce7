"""Operations of operators: create and delete queues; move, export, import and resend messages."""
