"""A cell is a plain number, a missing value or a text; what may be a number is never a text."""

import pytest

from vcl_radial.data.cells import (
    is_missing,
    may_be_number,
    plain_number,
    words_around_numbers,
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5.0),
        ("-5", -5.0),
        ("+5", 5.0),
        ("5.", 5.0),
        (".5", 0.5),
        ("007", 7.0),
        ("1e5", 1e5),
        ("-1.5E-03", -0.0015),
        ("0.1", 0.1),
        ("1e999", float("inf")),
    ],
)
def test_digits_a_point_a_sign_and_an_exponent_make_a_plain_number(text, number):
    assert plain_number(text) == number
    assert not is_missing(text)


AS_OTHERS_WRITE_THEM = [
    *("2,5", "-2,5", ",5", "5,", "2,000", "2,000.5", "1,234,567", "12,34,567"),
    *("1.234,56", "1.234.567", "1 234", "1 234,5", "1'234.50", "1’234", "1´234", "1`234"),
    *("1\u2009234", "1\u00a0234", "1\u202f234", "1\u066c234", "5\u200b", "\u200e-5"),
    *("20%", "20 %", "5‰", "$20", "-$20.00", "$-20", "20 €", "€20", "US$20", "20 EUR", "kr 20"),
    *(
        "£5",
        "¥5",
        "₹5",
        "(20)",
        "($20)",
        "$ (20.00)",
        "%20",
        "Rs. 20",
        "20 Kč",
        "−5",
        "–5",
        "5-",
        "--5",
        "+-5",
    ),
    *("1_000", "1_000.5", "0x1F", "0b101", "0o17", "1d5", "1.5D+05", "1e 5", "1,5e3"),
    *("1.5×10^3", "1.5*10^3", "1.5×10³", "²", "2½", "٣", "５", "२", "1·5"),
    *("'5", '"5"', '="5"', "5°", "-inf", "∞", "+Infinity", "−INF"),
]


@pytest.mark.parametrize("text", AS_OTHERS_WRITE_THEM)
def test_what_other_programs_and_locales_write_may_be_a_number_and_is_no_plain_one(text):
    assert plain_number(text) is None
    assert may_be_number(text)
    assert not is_missing(text)


@pytest.mark.parametrize(
    "text",
    [
        *("12_3", "1e", "3D", "A7", "1j", "R20", "12e3x", "5kg", "20k", "12 years", "5 m²"),
        *("2024-05-12", "12.05.2024", "5/12/2024", "12:30", "1.2.3", "10.0.0.1"),
        *("10-20", "0–17", "65+", "<5", ">=100", "3/5", "120/80", "2 or 3", "1, 2"),
        *("Infinity", "inf", "true", "yes", "Ann", "naïve", "none", "Na", "+", "三"),
    ],
)
def test_names_codes_dates_versions_and_ranges_are_texts(text):
    assert plain_number(text) is None
    assert not may_be_number(text)
    assert not is_missing(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "?", "-", "--", "–", ".", "...", "…", "NA", "N/A", "n/a", "NaN", "nan", "-nan"),
        *("None", "null", "NULL", "<NA>", "#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?"),
        *(
            "#WERT!",
            "#NV",
            "#####",
            "1.#INF",
            "-1.#IND00",
            "1.#QNAN",
            "$ -",
            "NaT",
            r"\N",
            "-nan(ind)",
        ),
    ],
)
def test_signs_of_data_sets_and_errors_of_spreadsheets_are_missing_values(text):
    assert is_missing(text)
    assert plain_number(text) is None


@pytest.mark.parametrize("text", ["1" * 10**5 + "x", "5" + " " * 10**5 + "x", "1" + ",00" * 10**5])
def test_a_long_cell_is_judged_in_linear_time(text):
    assert plain_number(text) is None
    assert not may_be_number(text)


@pytest.mark.parametrize(
    "form",
    [
        *("{} kg", "{}kg", "{}°C", "{} percent", "{}k", "SGD {}", "R {}", "{}L", "{}円"),
        *("tensor({}.)", "np.float64({}.5)", "[{}]", "Decimal('{}')"),
    ],
)
def test_numbers_in_the_same_words_are_no_texts(form):
    assert words_around_numbers(form.format(i) for i in range(5)) is not None


@pytest.mark.parametrize("form", ["A{}", "zone-{}", "{}-9", "{}+", "1/{}", "v{}.2.3", "2024-05-{}"])
def test_codes_dates_and_ranges_are_texts(form):
    assert words_around_numbers(form.format(i) for i in range(5)) is None


def test_texts_of_several_forms_are_texts():
    assert words_around_numbers(["5 kg", "3 lb"]) is None
