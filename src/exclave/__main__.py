"""`python -m exclave`."""

from exclave.main.entry import main

if __name__ == "__main__":
    main()
