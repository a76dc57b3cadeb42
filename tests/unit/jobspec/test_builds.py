"""What is built for a part, and when a build can be used again."""

from exclave.appconfig.model.kinds.helm_chart import HelmChart, HelmRepo
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest, Kustomize
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.shared import Repo, Repos
from exclave.jobspec.builds import BuildTarget, add_policies, make_build_job, make_target
from exclave.wire.specs import ChartSource, GitSource, KustomizeOptions, UploadedSource
from tests.unit.jobspec.jobspec_kit import CONFIG, DIGEST, SOURCES

HERE = Repos(public_repo=Repo(repo=".", directory="./infra"))
GIT = Repos(connected_repo=Repo(repo="acme/infra", directory="db", branch="main"))


def target(
    definition: Repos, part: str = "sandbox", type_: str = "terraform_module"
) -> BuildTarget:
    made = make_target(definition, SOURCES, part=part, type_=type_)
    assert made is not None
    return made


def test_a_source_is_a_folder_of_the_upload_or_of_a_repository() -> None:
    assert target(HERE).source == UploadedSource(
        config_id=CONFIG, archive_digest=DIGEST, directory="infra"
    )
    assert target(GIT).source == GitSource(
        url="https://github.com/acme/infra", ref="main", directory="db", connected=True
    )


def chart(version: str = "") -> HelmChart:
    repo = HelmRepo(repo_url="https://charts.example.com", chart="redis", version=version)
    return HelmChart(type="helm_chart", name="cache", chart_name="cache", helm_repo=repo)


def test_a_chart_of_a_repository_is_a_source_by_its_version() -> None:
    assert target(chart("^1.2"), type_="helm_chart").source == ChartSource(
        url="https://charts.example.com", chart="redis", version="^1.2"
    )
    assert target(chart()).key == target(chart()).key
    assert target(chart()).key != target(chart("1.2.3")).key


def test_a_definition_without_a_repository_is_not_built() -> None:
    assert make_target(Repos(), SOURCES, part="sandbox", type_="terraform_module") is None


def test_builds_of_the_same_source_and_type_have_the_same_key() -> None:
    assert target(GIT, "sandbox").key == target(GIT, "component:db").key
    assert target(GIT).key != target(HERE).key
    assert target(GIT).key != target(GIT, type_="helm_chart").key


def test_a_build_job_is_made_of_its_target() -> None:
    made = make_target(GIT, SOURCES, part="component:db", type_="helm_chart", timeout="{{.nuon.x}}")
    assert made is not None

    spec = make_build_job(made, build_id=f"bui_{'a' * 26}", repository="apps/a")

    assert (spec.part, spec.type, spec.source) == ("component:db", "helm_chart", made.source)
    assert spec.timeout_s == 300.0


def test_policies_are_part_of_the_key_so_that_a_changed_one_is_evaluated_again() -> None:
    plain = target(GIT, type_="image_build")
    first = add_policies(plain, [Policy(name="root", contents="package nuon")])
    second = add_policies(plain, [Policy(name="root", contents="package nuon\n\ndeny := 1")])

    assert add_policies(plain, []) == plain
    assert len({plain.key, first.key, second.key}) == 3
    spec = make_build_job(first, build_id=f"bui_{'a' * 26}", repository="apps/a")
    assert [(policy.name, policy.rego) for policy in spec.policies] == [("root", "package nuon")]


def test_a_job_without_policies_is_one_that_older_runners_read() -> None:
    spec = make_build_job(target(GIT), build_id=f"bui_{'a' * 26}", repository="apps/a")

    assert "policies" not in spec.model_dump(mode="json")


def overlay(*patches: str) -> KubernetesManifest:
    return KubernetesManifest(
        type="kubernetes_manifest",
        name="web",
        namespace="shop",
        public_repo=Repo(repo="acme/infra", directory="k8s"),
        kustomize=Kustomize(path="overlays/prod/", patches=patches),
    )


def test_how_an_overlay_is_built_is_part_of_its_key() -> None:
    plain, patched = (target(overlay(*names), type_="kustomize") for names in ((), ("p.yaml",)))

    assert plain.kustomize == KustomizeOptions(path="overlays/prod")
    assert plain.key != patched.key
    spec = make_build_job(patched, build_id=f"bui_{'a' * 26}", repository="apps/a")
    assert spec.kustomize == KustomizeOptions(path="overlays/prod", patches=["p.yaml"])
