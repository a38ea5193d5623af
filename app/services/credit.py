"""The use cases of credit, and the toll that a metered claim pays within its own transaction.

Locks are taken in one order: account, namespace, claim. Whatever does not pay is raised, so that the transaction that
tried is undone as a whole.
"""

from app import tokens
from app.core import credit as core
from app.core.credit import CreditRecord
from app.storage import credit as storage
from app.storage.engine import Engine, Reader, Transaction
from app.tokens import Kind


class NotPaid(Exception):
    """Undoes a transaction; `outcome` is the refusal that comes of it."""

    def __init__(self, outcome: core.Unpaid) -> None:
        super().__init__()
        self.outcome = outcome


class Toll:
    """One call's price and the account that pays it."""

    def __init__(self, price: int, account_hash: bytes) -> None:
        self._price = price
        self._account_hash = account_hash

    def can_pay(self, reader: Reader) -> bool:
        """Whether it could pay now. Raises NotPaid for an unknown account."""
        return self._known(storage.find(reader, self._account_hash)).balance >= self._price

    def lock(self, tx: Transaction) -> CreditRecord:
        """The account, locked until the transaction ends. Raises NotPaid for an unknown one."""
        return self._known(storage.lock(tx, self._account_hash))

    def pay(self, tx: Transaction, account: CreditRecord) -> core.Charged:
        """Debit the locked account. Raises NotPaid where it holds too little."""
        match core.charge(account, self._price):
            case core.Charged() as charged:
                tx.failpoint("before-debit")
                storage.save(tx, self._account_hash, charged.record)
                return charged
            case core.InsufficientCredit() as refused:
                raise NotPaid(refused)

    def give_back(self, tx: Transaction, account: CreditRecord) -> None:
        """Undo one debit of the locked account."""
        storage.save(tx, self._account_hash, core.refund(account, self._price))

    def _known(self, account: CreditRecord | None) -> CreditRecord:
        if account is None:
            raise NotPaid(core.UnknownCredit())
        return account


class Credits:
    """Trial, balance and grants where a claim has a price, in millionths of a dollar.

    `server_key` makes the trial's token of an address: the same address always gets the same one, and nobody else can
    work it out.
    """

    def __init__(self, engine: Engine, *, price: int, server_key: bytes) -> None:
        self._engine = engine
        self._server_key = server_key
        self.price = price

    def toll(self, credit_token: str) -> Toll:
        """What the holder of this token pays for one claim."""
        return Toll(self.price, _account_hash(credit_token))

    def trial(self, address: str) -> tuple[str, CreditRecord]:
        """The trial's token of an address as it is counted (IPv6 by /64), and its account. Granted once, for good."""
        token = Kind.CREDIT_TRIAL.value + tokens.sealed(self._server_key, "credit-trial", address)
        account_hash = _account_hash(token)

        def operation(tx: Transaction) -> CreditRecord:
            known = storage.lock_or_make(tx, account_hash)
            if known is not None:
                return known
            opened = core.grant(None, core.TRIAL_AMOUNT)
            storage.save(tx, account_hash, opened)
            return opened

        return token, self._engine.run(operation)

    def balance(self, credit_token: str) -> CreditRecord | None:
        """The account of a token; None for an unknown one."""
        account_hash = _account_hash(credit_token)
        return self._engine.read(lambda reader: storage.find(reader, account_hash))

    def grant(self, amount: int, credit_token: str | None = None) -> tuple[str, CreditRecord] | core.UnknownCredit:
        """Add 1 to LARGEST_AMOUNT millionths to the token's account; without a token, open one under a new token."""
        token = tokens.mint(Kind.CREDIT) if credit_token is None else credit_token
        account_hash = _account_hash(token)

        def operation(tx: Transaction) -> CreditRecord | None:
            if credit_token is None:
                known = storage.lock_or_make(tx, account_hash)
            else:
                known = storage.lock(tx, account_hash)
                if known is None:
                    return None
            more = core.grant(known, amount)
            storage.save(tx, account_hash, more)
            return more

        account = self._engine.run(operation)
        return core.UnknownCredit() if account is None else (token, account)


def _account_hash(credit_token: str) -> bytes:
    return tokens.digest("credit-token", credit_token)
