"""A long, random, hostile load that must neither grow nor lie: tools (`bodies`), truth (`ledger`), load, growth."""
