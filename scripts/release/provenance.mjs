// Provenance: a signed statement of the registry that a CI job built a package from a commit of a public repository.

/**
 * Tells whether the packages can be published with provenance here, and what is missing. npm and pnpm create the
 * statement in jobs of GitHub Actions and GitLab CI only, and compare the repository of the manifest with the job's.
 */
export function describeProvenance({ env, manifests, commit }) {
  const without = manifests.filter(({ repository }) => repository === undefined);
  const missing = [
    ...(env["ACTIONS_ID_TOKEN_REQUEST_URL"] || env["SIGSTORE_ID_TOKEN"]
      ? []
      : ["a CI job of GitHub Actions or GitLab CI with an OIDC token"]),
    ...(without.length === 0 ? [] : [`"repository" in the manifests of ${formatNames(without)}`]),
  ];
  if (missing.length === 0) return { attested: true, note: `built from commit ${commit} by a CI job, attested` };
  return { attested: false, note: `built from commit ${commit}, not attested; it needs ${missing.join(" and ")}` };
}

function formatNames([first, ...rest]) {
  return rest.length === 0 ? first.name : `${first.name} and ${rest.length} more`;
}
