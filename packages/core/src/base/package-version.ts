/** Version of all Statewright packages of a release, such as `0.1.0`; `npm run release` writes the number. */
export const packageVersion = "0.1.0";
