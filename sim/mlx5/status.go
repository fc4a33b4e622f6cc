// SPDX-License-Identifier: Apache-2.0

package mlx5

import (
	"errors"
	"fmt"

	"github.com/flexsteer/flexsteer/sim/queue"
	"github.com/flexsteer/flexsteer/sim/steering"
)

// Status is a command's status: the first byte of each reply.
type Status uint8

// What a command can answer. The driver turns them into EIO, EINVAL, EBUSY,
// ENOMEM and EAGAIN (cmd_status_to_err in its cmd.c).
const (
	OK               Status = 0x00
	InternalError    Status = 0x01
	BadOp            Status = 0x02
	BadParam         Status = 0x03
	BadSysState      Status = 0x04
	BadResource      Status = 0x05
	ResourceBusy     Status = 0x06
	NotReady         Status = 0x07
	LimitExceeded    Status = 0x08
	BadResourceState Status = 0x09
	BadIndex         Status = 0x0a
	NoResources      Status = 0x0f
	BadInputLength   Status = 0x50
	BadOutputLength  Status = 0x51
)

var statusNames = map[Status]string{
	OK: "OK", InternalError: "INT_ERR", BadOp: "BAD_OP", BadParam: "BAD_PARAM", BadSysState: "BAD_SYS_STATE",
	BadResource: "BAD_RES", ResourceBusy: "RES_BUSY", NotReady: "NOT_READY", LimitExceeded: "LIM_ERR",
	BadResourceState: "BAD_RES_STATE", BadIndex: "IX_ERR", NoResources: "NO_RES",
	BadInputLength: "BAD_INP_LEN", BadOutputLength: "BAD_OUTP_LEN",
}

// String is the name of the driver's MLX5_CMD_STAT_ constant, without its _ERR.
func (s Status) String() string {
	if name := statusNames[s]; name != "" {
		return name
	}
	return fmt.Sprintf("status %#x", uint8(s))
}

// MarshalText implements encoding.TextMarshaler with String.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler: the names that String gives.
func (s *Status) UnmarshalText(text []byte) error {
	for status, name := range statusNames {
		if name == string(text) {
			*s = status
			return nil
		}
	}
	return fmt.Errorf("no command status %q; there are %s", text, oneOf(statusNames))
}

// Syndrome tells one refusal from another with the same status. The driver
// prints it, and a Violation has it too.
type Syndrome uint32

// The model's own syndromes.
const (
	UnknownOpcode    Syndrome = 0x5f0001 + iota
	UnknownModifier           // an op_mod that the model does not know
	UnknownBits               // set bits of the input outside of the modelled fields
	WrongLength               // input or output too short, or too long
	WrongState                // of the function: not before ENABLE_HCA, only after INIT_HCA, ...
	BadValue                  // a modelled field with a value that makes no sense, or is not offered
	NoSuchObject              // never made, or destroyed
	ObjectInUse               // others need it
	WrongObjectState          // a state change that is not allowed, or something that is there already
	LimitReached              // the card has no more of it: no fault of the driver
	BadMemory                 // an address outside of the guest's memory
)

// refusal is why a command was not done.
type refusal struct {
	status   Status
	syndrome Syndrome
	text     string
	injected bool // by a Fault
}

func (r *refusal) Error() string { return r.text }

// legal refusals are those that a correct driver may provoke.
func (r *refusal) legal() bool { return r.syndrome == LimitReached }

func refuse(status Status, why Syndrome, format string, args ...any) *refusal {
	return &refusal{status: status, syndrome: why, text: fmt.Sprintf(format, args...)}
}

func badValue(format string, args ...any) *refusal {
	return refuse(BadParam, BadValue, format, args...)
}

var steeringRefusals = map[steering.Kind]refusal{
	steering.NotFound:    {status: BadResource, syndrome: NoSuchObject},
	steering.BadParam:    {status: BadParam, syndrome: BadValue},
	steering.NoResources: {status: NoResources, syndrome: LimitReached},
	steering.InUse:       {status: BadResourceState, syndrome: ObjectInUse},
	steering.BadState:    {status: BadResourceState, syndrome: WrongObjectState},
}

var queueRefusals = map[queue.Kind]refusal{
	queue.NotFound:    {status: BadResource, syndrome: NoSuchObject},
	queue.BadParam:    {status: BadParam, syndrome: BadValue},
	queue.NoResources: {status: NoResources, syndrome: LimitReached},
	queue.InUse:       {status: BadResourceState, syndrome: ObjectInUse},
	queue.BadState:    {status: BadResourceState, syndrome: WrongObjectState},
}

// asRefusal is what the driver is told of an error of any room.
func asRefusal(err error) *refusal {
	var r *refusal
	var s *steering.Error
	var q queue.Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &s):
		of := steeringRefusals[s.Kind]
		of.text = err.Error()
		return &of
	case errors.As(err, &q):
		of := queueRefusals[q.Kind]
		of.text = err.Error()
		return &of
	}
	return refuse(InternalError, BadValue, "%v", err)
}
