"""What no schema says about the objects that the chart makes. Arguments: the file with the alerts, and rendered objects."""

import re
import sys
import tomllib

import yaml

MADE_UP, SET = "https://docs.example/operate/", "https://wiki.example/pilot/"


def read(path):
    with open(path, encoding="utf-8") as file:
        return [each for each in yaml.safe_load_all(file) if each]


def of_kind(objects, kind):
    return [each for each in objects if each["kind"] == kind]


def check_files(objects):
    """pilot.toml can be read, and each file it names is one that the pod has."""
    (text,) = (each["data"]["pilot.toml"] for each in of_kind(objects, "ConfigMap"))
    tomllib.loads(text)
    (pod,) = (each["spec"]["template"]["spec"] for each in of_kind(objects, "StatefulSet"))
    (secrets,) = (each["projected"]["sources"] for each in pod["volumes"] if each["name"] == "secrets")
    there = [item["path"] for source in secrets for item in source["secret"]["items"]]
    assert len(there) == len(set(there)), f"two files have the same name: {there}"
    variables = [each.get("value", "") for each in pod["containers"][0].get("env", [])]
    named = re.findall("/etc/pilot/secrets/([a-z.-]+)", " ".join([text, *variables]))
    assert sorted(named) == sorted(there), f"named: {sorted(named)}, there: {sorted(there)}"
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    volumes = {volume["name"] for volume in pod["volumes"]} | {"ledger"}
    assert mounted == volumes, f"mounted: {mounted}, volumes: {volumes}"


def check_alerts(objects, alerts):
    """The chart's alerts are those of the file, whatever the indentation does to them."""
    for rule in of_kind(objects, "PrometheusRule"):
        expected = yaml.safe_load(alerts.replace(MADE_UP, SET))
        assert rule["spec"] == expected, "the alerts of the chart differ from their file"
        print(sum(len(group["rules"]) for group in expected["groups"]), "alerts are those of their file")


def main(alerts, *rendered):
    with open(alerts, encoding="utf-8") as file:
        alerts = file.read()
    for path in rendered:
        objects = read(path)
        check_files(objects)
        check_alerts(objects, alerts)


main(*sys.argv[1:])
