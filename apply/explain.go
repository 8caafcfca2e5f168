package apply

// Explain turns the error of any request to this cluster into one that says where,
// why and what to do next. A nil error stays nil.
func (c *Cluster) Explain(ref Ref, op string, err error) error {
	if err == nil {
		return nil
	}
	return c.explain(ref, op, err)
}
