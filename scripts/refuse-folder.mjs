// `prepack` script of every package. A folder must not be packed directly, because scripts/pack-package.mjs adds its
// docs and the links of its README. `pnpm pack`, `pnpm publish` and the commands of npm therefore fail with
// instructions.

import { basename } from "node:path";

const name = basename(process.cwd());
process.stderr.write(
  `packages/${name} cannot be packed directly: its docs would be missing, and links of its README would be broken.
At the root of the repository, create the tarball, or release all packages:
  npm run pack -- <folder> packages/${name}
  npm run release -- --dry-run
`,
);
process.exitCode = 1;
