"""A nested template becomes a part of another one, and sees nothing but its own names."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.json_values import Json
from exclave.stacks.nested import FlatTemplate, flatten_template
from exclave.stacks.template_text import TemplateError

TEMPLATE = """
Parameters:
  Domain: {Type: String}
  Zones: {Type: CommaDelimitedList}
  InstallSize: {Type: String, Default: small}
  Image: {Type: "AWS::SSM::Parameter::Value<String>"}
  Own: {Type: Number, Default: 3}
Conditions:
  Large: !Equals [!Ref InstallSize, large]
  Both: !And [!Condition Large, !Not [!Equals [!Ref Domain, ""]]]
Mappings:
  Sizes: {large: {Days: 9}}
Resources:
  Bucket:
    Type: AWS::S3::Bucket
    Condition: Large
    DeletionPolicy: Retain
    Properties:
      BucketName: !Sub "${Domain}-${AWS::Region}-${InstallSize}"
      Literal: !Sub "${!Domain}"
      Days: !FindInMap [Sizes, !Ref InstallSize, Days]
      Zones: !Ref Zones
      Gone: !If [Both, !Ref Own, !Ref AWS::NoValue]
  Policy:
    Type: AWS::S3::BucketPolicy
    DependsOn: Bucket
    Properties:
      Bucket: !Ref Bucket
      Statement: {Condition: {StringEquals: {a: !GetAtt Bucket.Arn}}}
      Text: !Sub ["${Bucket.Arn}/${Key}", {Key: !Ref Image}]
Outputs:
  Arn:
    Condition: Large
    Value: !GetAtt Bucket.Arn
    Export: {Name: shared}
"""
GIVEN = {"Domain": "acme.example", "Zones": "a, b", "Image": "/ami"}


def flatten(text: str = TEMPLATE, **values: str) -> FlatTemplate:
    return flatten_template("data-base", text, {**GIVEN, **values}, known=["InstallSize"])


def build(**properties: Json) -> str:
    return json.dumps(
        {
            "Parameters": {"Text": {"Type": "String"}},
            "Resources": {"A": {"Type": "AWS::S3::Bucket", "Properties": properties}},
        }
    )


def test_all_names_get_the_prefix_and_references_follow() -> None:
    flat = flatten()

    assert flat.resources["NestedDataBaseBucket"] == {
        "Type": "AWS::S3::Bucket",
        "Condition": "NestedDataBaseLarge",
        "DeletionPolicy": "Retain",
        "Properties": {
            "BucketName": {"Fn::Sub": "acme.example-${AWS::Region}-${InstallSize}"},
            "Literal": "${Domain}",
            "Days": {"Fn::FindInMap": ["NestedDataBaseSizes", {"Ref": "InstallSize"}, "Days"]},
            "Zones": ["a", "b"],
            "Gone": {
                "Fn::If": [
                    "NestedDataBaseBoth",
                    {"Ref": "NestedDataBaseOwn"},
                    {"Ref": "AWS::NoValue"},
                ]
            },
        },
    }
    assert flat.resources["NestedDataBasePolicy"] == {
        "Type": "AWS::S3::BucketPolicy",
        "DependsOn": ["NestedDataBaseBucket"],
        "Properties": {
            "Bucket": {"Ref": "NestedDataBaseBucket"},
            "Statement": {
                "Condition": {
                    "StringEquals": {"a": {"Fn::GetAtt": ["NestedDataBaseBucket", "Arn"]}}
                }
            },
            "Text": {
                "Fn::Sub": [
                    "${NestedDataBaseBucket.Arn}/${Key}",
                    {"Key": {"Ref": "NestedDataBaseImage"}},
                ]
            },
        },
    }
    assert flat.conditions == {
        "NestedDataBaseLarge": {"Fn::Equals": [{"Ref": "InstallSize"}, "large"]},
        "NestedDataBaseBoth": {
            "Fn::And": [
                {"Condition": "NestedDataBaseLarge"},
                {"Fn::Not": [{"Fn::Equals": ["acme.example", ""]}]},
            ]
        },
    }
    assert flat.mappings == {"NestedDataBaseSizes": {"large": {"Days": 9}}}


def test_parameters_without_a_value_become_those_of_the_stack() -> None:
    assert flatten().parameters == {
        "NestedDataBaseImage": {"Type": "AWS::SSM::Parameter::Value<String>", "Default": "/ami"},
        "NestedDataBaseOwn": {"Type": "Number", "Default": 3},
    }


def test_a_value_of_the_app_wins_over_a_parameter_of_the_stack() -> None:
    flat = flatten(InstallSize="large")

    assert flat.conditions["NestedDataBaseLarge"] == {"Fn::Equals": ["large", "large"]}


def test_outputs_keep_their_names_and_are_not_exported() -> None:
    flat = flatten()

    assert flat.outputs == {
        "Arn": {
            "Value": {"Fn::GetAtt": ["NestedDataBaseBucket", "Arn"]},
            "Condition": "NestedDataBaseLarge",
        }
    }
    assert flat.left_out == ("the output `Arn` is not exported to other stacks",)


@pytest.mark.parametrize(
    ("property_", "message"),
    [
        ({"Ref": "RunnerRole"}, "RunnerRole"),
        ({"Fn::GetAtt": ["SealSecret", "Id"]}, "SealSecret"),
        ({"Fn::GetAtt": "SealSecret"}, "needs a resource and an attribute"),
        ({"Fn::Sub": "${StackDocument}"}, "StackDocument"),
        ({"Fn::Sub": ["${Text}"]}, "a text and a mapping"),
        ({"Fn::If": ["Enabled", 1, 2]}, "no condition `Enabled`"),
        ({"Fn::If": "Enabled"}, "no list"),
        ({"Fn::FindInMap": [{"Ref": "Text"}, "a", "b"]}, "no mapping"),
        ({"Fn::Transform": {"Name": "AWS::Include"}}, "Fn::Transform"),
        ({"Ref": ["A"]}, "no resource"),
    ],
)
def test_names_outside_of_the_template_cannot_be_read(property_: Json, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        flatten_template("n", build(X=property_), {})

    assert message in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Transform: AWS::Serverless-2016-10-31\nResources: {}", "`Transform`"),
        ("Resources: []", "`Resources` is not a mapping"),
        ("Resources: {A: 1}", "`A` in `Resources` is not a mapping"),
        ("Resources: {'a-b': {Type: T}}", "not a name"),
        ("Resources: {A: {Properties: {}}}", "no `Type`"),
        ("Resources: {A: {Type: T, DependsOn: B}}", "no resource `B`"),
        ("Resources: {A: {Type: T, DependsOn: {B: 1}}}", "not a list"),
        ("Resources: {A: {Type: T, Condition: B}}", "no condition `B`"),
        ("Resources: {}\nOutputs: {A: {}}", "no `Value`"),
        ("Resources: {}\nOutputs: {A: {Value: 1, Condition: B}}", "no condition `B`"),
        ("Resources: {}\nConditions: {A: {Ref: AWS::Region}, B: !Condition C}", "no condition `C`"),
    ],
)
def test_what_cannot_be_part_of_another_template_is_refused(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        flatten_template("n", text, {})

    assert message in caught.value.message


def test_a_value_for_a_parameter_that_is_not_there_is_refused() -> None:
    with pytest.raises(TemplateError, match="no parameter `Gone`"):
        flatten(Gone="1")


def test_more_resources_than_a_template_may_have_are_refused() -> None:
    resources = {f"R{number}": {"Type": "T"} for number in range(501)}

    with pytest.raises(TemplateError, match="500"):
        flatten_template("n", json.dumps({"Resources": resources}), {})


def test_an_empty_template_of_the_sample_app_adds_nothing() -> None:
    assert flatten_template("bucket", "Resources: {}\n", {}) == FlatTemplate()


TEXTS = st.text(alphabet="a${}!: .'\"[%\\\nRef", max_size=20)


@given(text=TEXTS, value=TEXTS)
def test_a_value_is_text_and_never_a_reference(text: str, value: str) -> None:
    template = build(X={"Fn::Sub": ["${Text}" + text.replace("$", ""), {}]})

    flat = flatten_template("n", template, {"Text": value})

    properties = flat.resources["NestedNA"]["Properties"]
    assert isinstance(properties, dict)
    assert evaluate(properties["X"]) == value + text.replace("$", "")


def evaluate(value: Json) -> Json:
    """Return what CloudFormation makes of a text whose variables are all given."""
    if isinstance(value, str):
        return value
    assert isinstance(value, dict)
    text, variables = value["Fn::Sub"]
    assert isinstance(variables, dict)
    assert isinstance(text, str)
    for name, content in variables.items():
        assert isinstance(content, str)
        text = text.replace(f"${{{name}}}", content)
    return text


@given(st.text(min_size=1), st.dictionaries(st.sampled_from("ABC"), TEXTS))
def test_all_new_names_begin_with_one_prefix(name: str, values: dict[str, str]) -> None:
    parameters = {key: {"Type": "String"} for key in "ABC"}
    template = {"Parameters": parameters, "Resources": {"A1": {"Type": "T"}}}

    flat = flatten_template(name, json.dumps(template), values)

    assert all(key.startswith("Nested") for key in (*flat.resources, *flat.parameters))
    assert set(flat.parameters) == {key for key in flat.parameters if key[-1] not in values}
