from vcl_radial.described import described, module_of


def test_a_module_is_known_by_the_function_it_defines_and_is_not_imported(tmp_path):
    raises = "raise AssertionError\n"
    (tmp_path / "two_words.py").write_text(
        f'"""What it shows.\n\nMore."""\n\n\ndef go(): ...\n{raises}'
    )
    (tmp_path / "helper.py").write_text(f'"""Helps."""\n\nfrom other import go\n{raises}')
    (tmp_path / "bare.py").write_text(f"def go(): ...\n{raises}")
    assert described(tmp_path, "go") == {"bare": "", "two-words": "What it shows"}
    assert module_of("a.b", "two-words") == "a.b.two_words"
