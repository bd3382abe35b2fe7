// node token.mjs generate ALG KID | public | sign CLAIMS | verify ROOT, with KEY and TOKEN in the environment.
import { generate, load, loadPublic, sign, toPublicKey, verify } from "@moq/token";

const [verb, ...args] = process.argv.slice(2);
const { KEY, TOKEN } = process.env;
const say = (value) => console.log(JSON.stringify(value));

switch (verb) {
	case "generate":
		say(await generate(args[0], args[1]));
		break;
	case "public":
		say(toPublicKey(load(KEY)));
		break;
	case "sign":
		console.log(await sign(load(KEY), JSON.parse(args[0])));
		break;
	case "verify": {
		let key;
		try {
			key = loadPublic(KEY);
		} catch {
			key = load(KEY); // a symmetric one
		}
		say(await verify(key, TOKEN, args[0]));
		break;
	}
	default:
		throw new Error(`unknown verb ${verb}`);
}
