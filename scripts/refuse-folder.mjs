// The `prepack` of every package: its folder is not packed as it is, since its docs and the links of its README are put in
// by scripts/pack-package.mjs. So `pnpm pack`, `pnpm publish` and npm's say what to do, and pack nothing.

import { basename } from "node:path";

const name = basename(process.cwd());
process.stderr.write(
  `The folder packages/${name} is not packed by itself: its docs would be missing, and links of its README would lead nowhere.
At the root of the repository, make its tarball, look at it, and publish that:
  npm run pack -- <folder> packages/${name}
  pnpm publish <folder>/${name}.tgz
`,
);
process.exitCode = 1;
