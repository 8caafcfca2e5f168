// SPDX-License-Identifier: Apache-2.0

// Program probe is what tests run in pods: it says over HTTP what it sees.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	fmt.Println("probe begins")
	if os.Getenv("CRASH") != "" {
		fmt.Fprintln(os.Stderr, "probe ends: "+os.Getenv("CRASH"))
		os.Exit(3)
	}
	answer := func(path string, text func(value string) (string, error)) {
		http.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			out, err := text(r.URL.Query().Get("of"))
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, out)
		})
	}
	answer("/healthz", func(string) (string, error) {
		if _, err := os.Stat("/work/ill"); err == nil {
			return "", fmt.Errorf("ill")
		}
		return "well", nil
	})
	answer("/file", func(path string) (string, error) {
		text, err := os.ReadFile(path)
		return string(text), err
	})
	answer("/write", func(path string) (string, error) { return path, os.WriteFile(path, []byte("written"), 0o600) })
	answer("/fill", func(path string) (string, error) { return path, os.WriteFile(path, make([]byte, 4<<20), 0o600) })
	answer("/env", func(name string) (string, error) { return os.Getenv(name), nil })
	answer("/addresses", func(name string) (string, error) {
		all, err := net.LookupHost(name)
		return fmt.Sprint(all), err
	})
	answer("/get", func(url string) (string, error) {
		response, err := (&http.Client{Timeout: 5 * time.Second}).Get(url)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return string(text), err
	})
	answer("/exit", func(code string) (string, error) {
		n, err := strconv.Atoi(code)
		if err == nil {
			fmt.Fprintln(os.Stderr, "probe was told to end with "+code)
			os.Exit(n)
		}
		return "", err
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "80"
	}
	fmt.Println(http.ListenAndServe(":"+port, nil))
	os.Exit(1)
}
