//! Keys made on the spot, and tokens signed with them: those of an issuer, and those of whoever would
//! like to be one.

use std::sync::LazyLock;

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// A private key.
pub enum Key {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// One RSA key for all: they take long to make.
pub static RSA: LazyLock<Key> =
    LazyLock::new(|| Key::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));

impl Key {
    pub fn p256() -> Self {
        Self::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    pub fn p384() -> Self {
        Self::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap())
    }

    pub fn ed25519() -> Self {
        Self::Ed25519(Ed25519KeyPair::generate().unwrap())
    }

    /// Its public half as a JSON Web Key, without `use` and `alg`.
    pub fn jwk(&self, kid: &str) -> Value {
        match self {
            Self::Rsa(key) => {
                let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public_key());
                json!({
                    "kty": "RSA", "kid": kid, "n": encoded(public.n), "e": encoded(public.e)
                })
            }
            Self::P256(key) => point("P-256", kid, key.public_key().as_ref()),
            Self::P384(key) => point("P-384", kid, key.public_key().as_ref()),
            Self::Ed25519(key) => json!({
                "kty": "OKP", "crv": "Ed25519", "kid": kid, "x": encoded(key.public_key())
            }),
        }
    }

    /// What it signs with.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    /// A token with these claims.
    pub fn token(&self, kid: &str, claims: &Value) -> String {
        let header = json!({ "alg": self.algorithm(), "typ": "JWT", "kid": kid });
        self.sign(&header.to_string(), &claims.to_string())
    }

    /// A token of any two texts, signed as its header says where this key can, else as it can.
    pub fn sign(&self, header: &str, claims: &str) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let named: Value = serde_json::from_str(header).unwrap_or_default();
        let signature = self.signature(named["alg"].as_str().unwrap_or(""), message.as_bytes());
        format!("{message}.{}", encoded(signature))
    }

    fn signature(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let encoding: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(encoding, &random, message, &mut signature)
                    .unwrap();
                signature
            }
            Self::P256(key) | Self::P384(key) => {
                key.sign(&random, message).unwrap().as_ref().to_vec()
            }
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }

    /// The bytes of its public half that are taken for a shared secret by who confuses algorithms:
    /// the key as it is published, in DER, and in PEM.
    pub fn as_secrets(&self) -> Vec<Vec<u8>> {
        use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
        let mut secrets = vec![self.jwk("").to_string().into_bytes()];
        let der: PublicKeyX509Der<'_> = match self {
            Self::Rsa(key) => key.public_key().as_der().unwrap(),
            Self::P256(key) | Self::P384(key) => key.public_key().as_der().unwrap(),
            Self::Ed25519(key) => key.public_key().as_der().unwrap(),
        };
        let text = base64::engine::general_purpose::STANDARD.encode(der.as_ref());
        secrets.push(der.as_ref().to_vec());
        secrets.push(
            format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n").into_bytes(),
        );
        secrets
    }
}

/// A token whose signature is an HMAC under a secret.
pub fn symmetric(secret: &[u8], header: &str, claims: &str) -> String {
    let message = format!("{}.{}", encoded(header), encoded(claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let signature = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", encoded(signature))
}

/// A set of keys.
pub fn set(keys: impl IntoIterator<Item = Value>) -> String {
    json!({ "keys": Vec::from_iter(keys) }).to_string()
}

pub fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn point(curve: &str, kid: &str, bytes: &[u8]) -> Value {
    let (x, y) = bytes[1..].split_at(bytes.len() / 2);
    json!({ "kty": "EC", "crv": curve, "kid": kid, "x": encoded(x), "y": encoded(y) })
}
