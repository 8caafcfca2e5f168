// SPDX-License-Identifier: Apache-2.0

package strict

import "testing"

func TestPrometheus(t *testing.T) {
	const head = "{apiVersion: monitoring.coreos.com/v1, metadata: {name: a, namespace: b}, kind: "
	monitor := func(steps string) string {
		return head + "ServiceMonitor, spec: {endpoints: [{port: a, " + steps + "}]}}"
	}
	rules := func(rules string) string {
		return head + "PrometheusRule, spec: {groups: [{name: a, rules: [" + rules + "]}]}}"
	}
	routes := func(route string) string {
		return head + "AlertmanagerConfig, spec: {receivers: [{name: mail}, {name: pager}], route: " + route + "}}"
	}
	text := func(text string) string {
		return rules("{alert: A, expr: up == 0, annotations: {summary: '" + text + "'}}")
	}
	checkObjects(t, map[string]objectCase{
		"steps":                    {monitor("relabelings: [{sourceLabels: [__meta_kubernetes_pod_name], targetLabel: pod}, {action: labelmap, regex: a(.+)}, {action: keep, sourceLabels: [a], regex: b}], metricRelabelings: [{action: drop, sourceLabels: [__name__], regex: a}, {action: labeldrop, regex: b}]"), ""},
		"a step to nowhere":        {monitor("relabelings: [{sourceLabels: [a], replacement: b}]"), "spec.endpoints[0].relabelings[0].targetLabel: must be set: the action replace writes to a label"},
		"a replacement to nowhere": {monitor("metricRelabelings: [{sourceLabels: [a], action: Replace}]"), "spec.endpoints[0].metricRelabelings[0].targetLabel: must be set"},
		"a hash to nowhere":        {monitor("relabelings: [{sourceLabels: [a], action: hashmod, modulus: 2}]"), "the action hashmod"},
		"a label of targets":       {monitor("metricRelabelings: [{sourceLabels: [a, __meta_kubernetes_pod_name], targetLabel: pod}]"), "spec.endpoints[0].metricRelabelings[0].sourceLabels[1]: no metric has the label __meta_kubernetes_pod_name"},
		"of alerts":                {head + "Prometheus, spec: {alerting: {alertmanagers: [{name: a, alertRelabelings: [{regex: b}]}]}}}", "spec.alerting.alertmanagers[0].alertRelabelings[0].targetLabel"},
		"of another scrape":        {head + "ScrapeConfig, spec: {relabelings: [{regex: '(', targetLabel: a}]}}", "spec.relabelings[0].regex: is not a regular expression"},

		"routes":           {routes("{receiver: mail, routes: [{receiver: pager, routes: [{matchers: []}]}]}"), ""},
		"no such receiver": {routes("{receiver: mial}"), `spec.route.receiver: spec.receivers has no "mial"; did you mean "mail"?`},
		"no such one":      {routes("{receiver: mail, routes: [{receiver: mail}, {routes: [{receiver: phone}]}]}"), `spec.route.routes[1].routes[0].receiver: spec.receivers has no "phone"; known are mail, pager`},

		"quantiles":             {rules("{record: a:b, expr: 'histogram_quantile(0.9, sum by (le, job) (rate(a_bucket[5m])))'}, {record: a:c, expr: 'histogram_quantile(0.9, sum without (pod) (rate(a_bucket[5m])))'}, {record: a:d, expr: 'quantile(0.5, up)'}"), ""},
		"native histograms":     {rules("{record: a:b, expr: 'histogram_quantile(0.9, sum by (job) (rate(a[5m])))'}"), ""},
		"a quantile of percent": {rules("{record: a:b, expr: 'histogram_quantile(99, sum by (le) (rate(a_bucket[5m])))'}"), "spec.groups[0].rules[0].expr: histogram_quantile of 99 is infinite"},
		"another quantile":      {rules("{alert: A, expr: 'quantile(95, up) > 1'}"), "quantile of 95 is infinite"},
		"a quantile of a time":  {rules("{alert: A, expr: 'quantile_over_time(1.5, up[5m]) > 1'}"), "quantile_over_time of 1.5 is infinite"},
		"no buckets":            {rules("{alert: A, expr: 'histogram_quantile(0.9, (sum by (job) (rate(a_bucket[5m])))) > 1'}"), "histogram_quantile finds no buckets: sum drops the label le"},
		"all in one":            {rules("{record: a:b, expr: 'histogram_quantile(0.9, sum(rate(a_bucket[5m])))'}"), "finds no buckets"},
		"all but buckets":       {rules("{record: a:b, expr: 'histogram_quantile(0.9, sum without (le) (rate(a_bucket[5m])))'}"), "finds no buckets"},

		"functions":                   {text(`{{ $value | humanizePercentage }} {{ printf "%.2f" $value }} {{ if eq $labels.a "b" }}{{ toUpper "a" }}{{ end }} {{ range query "up" }}{{ .Labels.a }}{{ end }}`), ""},
		"no such function":            {text("{{ $value | humanizePercentag }}"), `spec.groups[0].rules[0].annotations[summary]: Prometheus rejects all rules of the file: its templates have no function "humanizePercentag"; did you mean "humanizePercentage"?`},
		"functions of others":         {text("{{ $value | toYaml2000 }}"), `its templates have no function "toYaml2000"`},
		"recorded":                    {rules("{record: 'job:up:sum', expr: sum(up)}, {alert: A, expr: 'job:up:sum == 0'}, {alert: B, expr: 'other:up:sum == 0'}"), ""},
		"an address":                  {"{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: a, namespace: b}, spec: {remoteWrite: [{url: 'https://a.example.org/w'}]}}", ""},
		"an address without a scheme": {"{apiVersion: monitoring.coreos.com/v1, kind: Prometheus, metadata: {name: a, namespace: b}, spec: {remoteWrite: [{url: a.example.org/w}]}}", "spec.remoteWrite[0].url: \"a.example.org/w\" is not a URL"},
		"a letter less":               {rules("{record: 'job:requests:sum', expr: sum(up)}, {alert: A, expr: 'job:request:sum == 0'}"), "spec.groups[0].rules[1].expr: no rule here records job:request:sum; did you mean job:requests:sum?"},
		"two letters swapped":         {rules("{alert: A, expr: 'job:requsets:sum == 0'}, {record: 'job:requests:sum', expr: sum(up)}"), "did you mean job:requests:sum?"},
		"of another thing":            {rules("{record: 'node:cpu:sum', expr: sum(up)}, {alert: A, expr: 'node:gpu:sum == 0'}"), ""},
		"of another time":             {rules("{record: 'node:cpu:rate5m', expr: sum(up)}, {alert: A, expr: 'node:cpu:rate50m == 0'}"), ""},
		"a metric without a record":   {rules("{record: 'node:cpus', expr: sum(up)}, {alert: A, expr: 'node_cpu == 0'}"), ""},
	})
}
