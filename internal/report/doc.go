// SPDX-License-Identifier: Apache-2.0

// Package report turns one reconcile.Status into what people and programs read:
// the JSON file under /run/flexsteerd, the STATUS line of sd_notify(3), metrics
// in the Prometheus exposition format, and tables for a terminal.
package report
