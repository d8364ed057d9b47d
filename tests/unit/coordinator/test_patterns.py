"""Regular expressions of clients: RE2's, so that no expression makes the broker backtrack."""

from __future__ import annotations

import pytest

from broker.coordinator.patterns import LONGEST, PatternError, compiled


@pytest.mark.parametrize(
    ("expression", "text", "matches"),
    [
        ("orders-.*", "orders-1", True),
        ("orders", "orders-1", False),  # the whole text
        ("", "", True),
        (r"\pL+", "äß", True),
        ("(a)(b)?", "a", True),
        ("(?i)ORDERS", "orders", True),
    ],
)
def test_pattern_matches_the_whole_text(expression, text, matches):
    assert compiled(expression).matches(text) is matches


@pytest.mark.parametrize("expression", [r"(a)\1", "(?=a)a", "(?!a)b", "(?<=a)b", "(?>a+)b", "(a++)b"])
def test_expression_that_needs_backtracking_is_refused(expression):
    with pytest.raises(PatternError):
        compiled(expression)


@pytest.mark.parametrize("expression", ["(x+x+)+y", "(a*)*b", "(x|x)*y", "(" * 900 + "x*" + ")*" * 900 + "y"])
def test_expression_that_would_take_for_ever_elsewhere_matches_in_linear_steps(expression):
    pattern = compiled(expression)
    assert not pattern.matches("x" * 20_000)
    assert pattern.steps("x" * 20_000) <= 20_001 * 200  # groups that would have to be captured cost 6,000 a character


@pytest.mark.parametrize("expression", ["(", "a{1001}", "*", r"(\pL\pN){400}", "a" * (LONGEST + 1), "(a{100}){100}"])
def test_expression_that_is_wrong_or_too_large_is_refused_with_a_reason(expression):
    with pytest.raises(PatternError, match=r"\w"):
        compiled(expression)
