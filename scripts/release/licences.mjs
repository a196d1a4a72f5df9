// Licences of the packages that users install with the published packages.

import { runCommand } from "./run-command.mjs";

/** Licences whose code an MIT program may include with no more than a notice. */
const allowedLicences = [
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "ISC",
  "MIT",
  "Unlicense",
];

/** Lists the production dependencies of all packages, transitive ones included, as name, version and licence. */
export async function listLicences(root) {
  const filter = ["--filter", "./packages/*"];
  const found = JSON.parse(
    await runCommand("pnpm", ["licenses", "list", "--prod", "--json", ...filter], { cwd: root }),
  );
  const rows = Object.values(found).flatMap((packages) =>
    packages.flatMap(({ name, versions, license }) =>
      versions.map((version) => ({ name, version, licence: String(license ?? "none") })),
    ),
  );
  return rows.sort((a, b) => compareTexts(`${a.name}@${a.version}`, `${b.name}@${b.version}`));
}

/** Returns a sentence for each dependency whose licence is not on the list. */
export function findForbiddenLicences(rows) {
  return rows
    .filter(({ licence }) => !isAllowedLicence(licence))
    .map(
      ({ name, version, licence }) =>
        `licences: expected one of ${allowedLicences.join(", ")} for ${name} ${version}, got ${licence}. ` +
        "Replace the package, or add the licence to scripts/release/licences.mjs after a review.",
    );
}

/** Tells whether an SPDX expression can be satisfied by licences of the list: one part of an OR, all parts of an AND. */
export function isAllowedLicence(expression) {
  const tokens = expression.match(/[()]|[^\s()]+/g) ?? [];
  const position = { index: 0 };
  const allowed = parseAlternatives(tokens, position);
  return allowed && position.index === tokens.length;
}

function parseAlternatives(tokens, position) {
  let allowed = parseConjunction(tokens, position);
  while (tokens[position.index] === "OR") {
    position.index++;
    allowed = parseConjunction(tokens, position) || allowed;
  }
  return allowed;
}

function parseConjunction(tokens, position) {
  let allowed = parseLicence(tokens, position);
  while (tokens[position.index] === "AND") {
    position.index++;
    allowed = parseLicence(tokens, position) && allowed;
  }
  return allowed;
}

function parseLicence(tokens, position) {
  const token = tokens[position.index++];
  if (token !== "(") return allowedLicences.includes(token);
  const allowed = parseAlternatives(tokens, position);
  return tokens[position.index++] === ")" && allowed;
}

function compareTexts(a, b) {
  return a < b ? -1 : Number(a > b);
}
