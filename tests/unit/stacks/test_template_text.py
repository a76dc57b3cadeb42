"""Templates are read as CloudFormation reads them, and within limits."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.stacks.template_text import MOST_CHARACTERS, TemplateError, read_template

YAML = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    Condition: IsOn
    Properties:
      BucketName: !Sub "${AWS::AccountId}-x"
      Account: 012345678901
      Versioning: yes
      Days: 30
      Share: 0.5
      Nothing: ~
      Quoted: "30"
      Name: !GetAtt Other.Arn.More
      Zone: !Select [0, !GetAZs ""]
      Policy: {Version: 2012-10-17}
"""


def test_yaml_is_read_as_json_with_long_functions() -> None:
    template = read_template(YAML)

    assert template == {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Resources": {
            "Bucket": {
                "Type": "AWS::S3::Bucket",
                "Condition": "IsOn",
                "Properties": {
                    "BucketName": {"Fn::Sub": "${AWS::AccountId}-x"},
                    "Account": "012345678901",
                    "Versioning": True,
                    "Days": 30,
                    "Share": 0.5,
                    "Nothing": None,
                    "Quoted": "30",
                    "Name": {"Fn::GetAtt": "Other.Arn.More"},
                    "Zone": {"Fn::Select": [0, {"Fn::GetAZs": ""}]},
                    "Policy": {"Version": "2012-10-17"},
                },
            }
        },
    }


def test_json_and_yaml_in_braces_are_read_alike() -> None:
    assert read_template('{"Resources": {"A": {"Type": "T"}}}') == read_template(
        "{Resources: {A: {Type: T}}}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a mapping"),
        ("- a", "not a mapping"),
        ("a: [", "not YAML"),
        ('{"a": 1', "neither JSON nor YAML"),
        ('{"a": 1, "a": 2}', "occurs twice"),
        ("a: 1\na: 2", "occurs twice"),
        ("a: &x 1\nb: *x", "anchors"),
        ("a: 1\n<<: {b: 1}", "merge"),
        ("a: !Transform {Name: x}", "`!Transform`"),
        ("a: !!binary eA==", "!!binary"),
        ("a: !!python/object/apply:os.system [id]", "not a function"),
        ("? [a]\n: 1", "a key is not a text"),
        ("a: 1\n---\nb: 2", "more than one document"),
        ("a: \x07", "character"),
        ('{"a": NaN}', "NaN"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "deeper"),
        ("a: " + "[" * 100 + "]" * 100, "deeper"),
        ("#" * (MOST_CHARACTERS + 1), "characters"),
    ],
)
def test_what_is_no_template_is_refused_with_a_reason(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        read_template(text)

    assert message in caught.value.message


def test_a_refusal_names_the_line() -> None:
    with pytest.raises(TemplateError) as caught:
        read_template("a: 1\nb:\n  c: !Nope x\n")

    assert caught.value.line == 3


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    template: object = {}
    with contextlib.suppress(TemplateError):
        template = read_template(text)

    assert isinstance(template, dict)
