"""Tic-tac-toe between two instances of the model; an illegal move is asked once more."""

import sgc

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class IllegalMove(Exception):
    pass


def draw(board):
    rows = []
    for r in range(3):
        rows.append("|".join(board[3 * r : 3 * r + 3]))
    return "\n-+-+-\n".join(rows)


def winner(board):
    for a, b, c in LINES:
        if board[a] != " " and board[a] == board[b] == board[c]:
            return board[a]
    return None


def read_move(text, board):
    digits = [c for c in text if c.isdigit()]
    if not digits:
        raise IllegalMove("that is not a number")
    move = int(digits[0]) - 1
    if move < 0 or move > 8:
        raise IllegalMove("squares go from 1 to 9")
    if board[move] != " ":
        row, column = divmod(move, 3)
        raise IllegalMove(f"row {row + 1}, column {column + 1} is taken")
    return move


@sgc.function
def program(s, board: list[str], first: str = "X"):
    board = list(board)
    player = first
    for _ in range(board.count(" ")):
        s += f"{draw(board)}\n{player} plays square"
        for attempt in range(2):
            s += sgc.gen("move", max_tokens=4, stop="\n") + "\n"
            try:
                move = read_move(s["move"], board)
                break
            except IllegalMove as e:
                s += f"No, {e}. Square"
        else:
            s += f" {player} forfeits."
            return "O" if player == "X" else "X"
        board[move] = player
        if winner(board):
            s += draw(board) + f"\n{player} wins!"
            return player
        player = "O" if player == "X" else "X"
    s += draw(board) + "\nA draw."
    return None


ARGUMENTS = [
    {"board": [" "] * 9},
    {"board": ["X", "O", "X", "X", "O", "O", " ", "X", " "], "first": "O"},
    {"board": list("XOXXOOOXX")},
]
REPLIES = [" 1", " 5", " 7", " 9", " 3.", " the middle", " 0", " 2"]
