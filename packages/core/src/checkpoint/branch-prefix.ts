/** Prefix of the ids that a branch makes, which keeps message and interrupt ids unique over the branches of a thread. */

/** First branch of a thread. */
const mainBranch = "main";

/**
 * Returns the prefix of message and interrupt ids made on a branch: its name and a dot, as in `b2.0:0:model`; empty for
 * `main`. An id continues with a digit. Dots of the name are doubled, and a name that begins with a digit gets a
 * leading dot: ids of two branches are never equal.
 */
export function toBranchPrefix(branch: string): string {
  if (branch === mainBranch) return "";
  return `${/^\d/.test(branch) ? "." : ""}${branch.replaceAll(".", "..")}.`;
}

/** Returns the id without the prefix of the branch. */
export function removeBranchPrefix(id: string, branch: string): string {
  const prefix = toBranchPrefix(branch);
  return id.startsWith(prefix) ? id.slice(prefix.length) : id;
}
