"""Modules that everything else uses: checks, memory formats, comparisons with libraries, private names."""
