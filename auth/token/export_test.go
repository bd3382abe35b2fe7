package token

// Seal signs any header and claims, whether they make sense or not.
func Seal(k *Key, header, claims string) string {
	text := encode64([]byte(header)) + "." + encode64([]byte(claims))
	signature, err := k.alg.method.Sign(text, k.signer())
	if err != nil {
		panic(err)
	}
	return text + "." + encode64(signature)
}
