// SPDX-License-Identifier: Apache-2.0

// Package simulate counts which receive queue each packet would get, without
// and with the rules of a configuration.
//
// Packets come from a capture, or are made from a description (Flow). The
// decision itself is that of steer.Classifier; this package only counts. The key and
// the table of the default path can be those of a link (LinkRSS).
package simulate
