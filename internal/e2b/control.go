package e2b

import "time"

// EnvdVersion is the version of E2B's data plane whose features the gateway has. E2B's SDKs use
// what that version has.
const EnvdVersion = "0.6.13"

// The states of a sandbox.
const (
	StateRunning = "running"
	StatePaused  = "paused"
)

// A NewSandbox is the request for a sandbox.
type NewSandbox struct {
	TemplateID string            `json:"templateID"`
	Timeout    *int64            `json:"timeout,omitempty"` // seconds
	AutoPause  bool              `json:"autoPause,omitempty"`
	AutoResume *AutoResume       `json:"autoResume,omitempty"`
	Secure     *bool             `json:"secure,omitempty"`
	Internet   *bool             `json:"allow_internet_access,omitempty"`
	Network    *Network          `json:"network,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
	EnvVars    map[string]string `json:"envVars,omitempty"`
}

// An AutoResume says whether a request resumes a paused sandbox.
type AutoResume struct {
	Enabled bool `json:"enabled"`
}

// A Network says what a sandbox may reach, and who may reach it.
type Network struct {
	AllowOut           []string       `json:"allowOut,omitempty"` // networks, addresses and names
	DenyOut            []string       `json:"denyOut,omitempty"`  // networks and addresses
	AllowPublicTraffic *bool          `json:"allowPublicTraffic,omitempty"`
	EgressProxy        any            `json:"egressProxy,omitempty"`
	MaskRequestHost    string         `json:"maskRequestHost,omitempty"`
	Rules              map[string]any `json:"rules,omitempty"`
}

// AllTraffic is the network that stands for all.
const AllTraffic = "0.0.0.0/0"

// A NetworkUpdate is the request to change what a sandbox may reach.
type NetworkUpdate struct {
	Network
	Internet *bool `json:"allow_internet_access,omitempty"`
}

// A Lifecycle says what becomes of a sandbox at its end.
type Lifecycle struct {
	AutoResume bool   `json:"autoResume"`
	OnTimeout  string `json:"onTimeout"` // kill or pause
}

// A Fork is the request for copies of a sandbox.
type Fork struct {
	Timeout *int64 `json:"timeout,omitempty"` // seconds
	Count   *int   `json:"count,omitempty"`   // default: 1
}

// A Forked is one of the copies.
type Forked struct {
	Sandbox *Sandbox `json:"sandbox,omitempty"`
}

// A Sandbox is how to reach a sandbox that runs.
type Sandbox struct {
	TemplateID         string  `json:"templateID"`
	Alias              string  `json:"alias,omitempty"`
	SandboxID          string  `json:"sandboxID"`
	ClientID           string  `json:"clientID"` // of no use, but clients demand it
	EnvdVersion        string  `json:"envdVersion"`
	EnvdAccessToken    string  `json:"envdAccessToken,omitempty"`
	TrafficAccessToken *string `json:"trafficAccessToken"`
	Domain             *string `json:"domain"`
}

// A Listed describes a sandbox.
type Listed struct {
	TemplateID  string            `json:"templateID"`
	Alias       string            `json:"alias,omitempty"`
	SandboxID   string            `json:"sandboxID"`
	ClientID    string            `json:"clientID"`
	StartedAt   time.Time         `json:"startedAt"`
	EndAt       time.Time         `json:"endAt"`
	CPUCount    int32             `json:"cpuCount"`
	MemoryMB    int32             `json:"memoryMB"`
	DiskSizeMB  int32             `json:"diskSizeMB"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	State       string            `json:"state"`
	EnvdVersion string            `json:"envdVersion"`
}

// A Detail describes a sandbox, and says how to reach it.
type Detail struct {
	Listed
	EnvdAccessToken string     `json:"envdAccessToken,omitempty"`
	Domain          *string    `json:"domain"`
	Lifecycle       *Lifecycle `json:"lifecycle,omitempty"`
	Network         *Network   `json:"network,omitempty"`
}

// A Timeout is the request of the calls that change when a sandbox ends.
type Timeout struct {
	Timeout int64 `json:"timeout"` // seconds
}
