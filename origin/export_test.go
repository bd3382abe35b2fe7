package origin

// Limits that tests go up to.
const (
	MaxIdleFronts = maxIdleFronts
	MaxProperties = maxProperties
)
