// The state of the repository that a release needs.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { groupEntries, readSection } from "./changelog.mjs";
import { runCommand, tryCommand } from "./run-command.mjs";

/** Returns the commit, the branch, whether the tree has changes, and the commit of the version's tag, if any. */
export async function readRepositoryState(root, version) {
  const git = async (...args) => (await runCommand("git", args, { cwd: root })).trim();
  const tagged = await tryCommand("git", ["rev-parse", "--verify", "--quiet", `refs/tags/v${version}^{commit}`], {
    cwd: root,
  });
  return {
    commit: await git("rev-parse", "HEAD"),
    branch: await git("rev-parse", "--abbrev-ref", "HEAD"),
    changes: (await git("status", "--porcelain")).split("\n").filter(Boolean),
    taggedCommit: tagged.code === 0 ? tagged.stdout.trim() : undefined,
  };
}

/** Returns a sentence for each reason not to publish `version` from this state. */
export function findRefusals(root, version, { commit, branch, changes, taggedCommit }) {
  const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
  const hasSection = readSection(changelog, version) !== undefined;
  const entries = groupEntries(readSection(changelog, hasSection ? version : "Unreleased") ?? []);
  return [
    ...(branch === "main" ? [] : [`release: expected the branch main, got ${branch}. Switch to main.`]),
    ...(changes.length === 0
      ? []
      : [`release: expected no changes in the tree, got ${changes.length} changed files. Commit them.`]),
    ...(entries.size > 0
      ? []
      : [
          `release: expected entries in CHANGELOG.md under "${hasSection ? version : "Unreleased"}", got none. ` +
            "Add a line for each visible change.",
        ]),
    ...(taggedCommit === undefined || taggedCommit === commit
      ? []
      : [
          `release: expected HEAD at the tag v${version} (${taggedCommit}), got ${commit}. ` +
            "Check out the tag's commit to continue its release, or name the next version: major, minor or patch.",
        ]),
    ...(hasSection && taggedCommit === undefined
      ? [`release: expected a tag v${version} of the version that CHANGELOG.md lists, got none. Create the tag.`]
      : []),
  ];
}
