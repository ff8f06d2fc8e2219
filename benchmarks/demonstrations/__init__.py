"""What softnum is for, shown: studies of arithmetics in training, each with its question, its command and its records.

    python -m benchmarks.demonstrations run wang        # or hopper, approximations; resumable
    python -m benchmarks.demonstrations keep wang       # its records, packed, into benchmarks/demonstrations/records
    python -m benchmarks.demonstrations show wang       # the table and the picture of the kept records
    python -m benchmarks.demonstrations sums            # the error of long sums, and its picture
    python -m benchmarks.demonstrations pytorch         # losses beside PyTorch's

A study is a file ``<name>.toml`` here: experiments, each a network, data, settings (`softnum.train.Settings`),
designs and seeds.
"""
