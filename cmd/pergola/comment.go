// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/pergola-dev/pergola/internal/unknown"
	"github.com/pergola-dev/pergola/source/forge"
)

// maxCommentInput limits the input in bytes, before it is cut to the limit of the forge.
const maxCommentInput = 32 << 20

func newComment() *cobra.Command {
	var o forge.Options
	var c forge.Comment
	var repository, tokenFile, caFile string
	var number int
	var within time.Duration
	cmd := &cobra.Command{
		Use:   "comment --provider PROVIDER [--repository OWNER/NAME] [--number N] < FILE",
		Short: "Keep one comment of a pull request up to date",
		Long: `Writes the Markdown on standard input as a comment of a pull request (GitLab: a merge request), or
updates the comment that it wrote before. It finds that comment by its author and by an invisible
marker at the beginning. If jobs run at the same time, one comment stays. Text beyond the forge's
limit is cut after a line.

In jobs of GitHub, GitLab, Gitea and Forgejo, the repository, the number and the address of the
forge are known. The token is in --token-file, or in a variable: GITHUB_TOKEN or GH_TOKEN (github),
GITLAB_TOKEN (gitlab), GITEA_TOKEN (gitea), FORGEJO_TOKEN (forgejo). Jobs of Gitea and Forgejo also
have GITHUB_TOKEN. GitLab's CI_JOB_TOKEN cannot write comments.`,
		Example: `  pergola diff --all --from origin/main... -o markdown | pergola comment --provider github --delete-empty`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(forge.Providers(), o.Provider) {
				return fmt.Errorf("--provider: %w", unknown.NameError("forge", o.Provider, forge.Providers()))
			}
			o.Proxy = http.ProxyFromEnvironment
			var err error
			if o.Token, err = forgeToken(o.Provider, tokenFile); err != nil {
				return err
			}
			if caFile != "" {
				if o.CA, err = os.ReadFile(caFile); err != nil {
					return fmt.Errorf("--ca-file: %w", err)
				}
			}
			job := currentPullRequestJob(o.Provider)
			if o.URL == "" {
				o.URL = job.url
			}
			if repository == "" {
				repository = job.repository
			}
			if number == 0 {
				number = job.number
			}
			if repository == "" || number == 0 {
				return errors.New("give --repository and --number: this is not a job of a pull request of " + o.Provider)
			}
			body, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxCommentInput))
			if err != nil {
				return fmt.Errorf("reading the text of the comment: %w", err)
			}
			c.Body = string(body)
			return postComment(cmd, o, repository, number, c, within)
		},
	}
	cmd.Flags().StringVar(&o.Provider, "provider", "", "forge: "+strings.Join(forge.Providers(), ", "))
	cmd.Flags().StringVar(&o.URL, "url", "", "address of the forge or of its API (default: from the job, or the public forge)")
	cmd.Flags().StringVar(&repository, "repository", "", "repository of the pull request")
	cmd.Flags().IntVar(&number, "number", 0, "number of the pull request")
	cmd.Flags().StringVar(&c.Marker, "marker", "pergola", "name that distinguishes the comments of several jobs")
	cmd.Flags().StringVar(&c.Author, "author", "", "login of the user that the token belongs to (default: read from the forge)")
	cmd.Flags().BoolVar(&c.DeleteEmpty, "delete-empty", false, "delete the comment if there is no text")
	cmd.Flags().StringVar(&c.FullTextLocation, "whole", "", "place of the full text if it has to be cut, e.g. 'the summary of the job'")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file with the token")
	cmd.Flags().StringVar(&caFile, "ca-file", "", "certificates to trust besides the certificates of the system, as PEM")
	cmd.Flags().DurationVar(&within, "timeout", 3*time.Minute, "how long to retry")
	_ = cmd.MarkFlagRequired("provider") // the flag exists
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(forge.Providers(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func postComment(cmd *cobra.Command, o forge.Options, repository string, number int, c forge.Comment, within time.Duration) error {
	f, err := forge.New(o)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), within)
	defer cancel()
	patience := forge.CIRetryPolicy(clock.RealClock{})
	patience.OnWait = func(err error, wait time.Duration) {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s; retrying in %s\n", printable(err.Error()), wait.Round(time.Second))
	}
	result, err := f.EnsureComment(ctx, repository, number, c, patience)
	if err != nil {
		return err
	}
	text := "Comment: " + string(result.Outcome)
	if result.Link != "" {
		text += " (" + result.Link + ")"
	}
	if result.TruncatedLines > 0 {
		text += fmt.Sprintf(", without its last %d lines", result.TruncatedLines)
	}
	fmt.Fprintln(cmd.OutOrStdout(), text+".")
	return nil
}

// forgeToken reads the token from the file, or from the variables of CI systems.
func forgeToken(provider, file string) (string, error) {
	if file != "" {
		token, err := readTokenFile(file)
		return string(token), err
	}
	names := map[string][]string{
		forge.GitHub: {"GITHUB_TOKEN", "GH_TOKEN"}, forge.GitLab: {"GITLAB_TOKEN"},
		forge.Gitea: {"GITEA_TOKEN", "GITHUB_TOKEN"}, forge.Forgejo: {"FORGEJO_TOKEN", "GITHUB_TOKEN"},
	}[provider]
	if token := strings.TrimSpace(firstEnvValue(names...)); token != "" || len(names) == 0 {
		return token, nil // an unknown provider is reported later
	}
	return "", fmt.Errorf("no token: set %s, or give --token-file", strings.Join(names, " or "))
}

// pullRequestJob is the pull request of a CI job, as its environment describes it.
type pullRequestJob struct {
	url, repository string
	number          int
}

var pullRefPattern = regexp.MustCompile(`^refs/pull/([0-9]{1,9})/`)

func currentPullRequestJob(provider string) pullRequestJob {
	if provider == forge.GitLab {
		// A merge request belongs to its target project, even if the job runs in a fork.
		number, _ := strconv.Atoi(os.Getenv("CI_MERGE_REQUEST_IID"))
		return pullRequestJob{os.Getenv("CI_API_V4_URL"), firstEnvValue("CI_MERGE_REQUEST_PROJECT_PATH", "CI_PROJECT_PATH"), number}
	}
	j := pullRequestJob{url: os.Getenv("GITHUB_API_URL"), repository: os.Getenv("GITHUB_REPOSITORY")}
	if found := pullRefPattern.FindStringSubmatch(os.Getenv("GITHUB_REF")); found != nil {
		j.number, _ = strconv.Atoi(found[1])
	}
	return j
}
